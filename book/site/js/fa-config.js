/* Font Awesome's script must not rewrite the icons that widgets add later: it breaks the Play widget. */
window.FontAwesomeConfig = { observeMutations: false };
