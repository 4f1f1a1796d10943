"""The framework of collapse made measurable: forces and their rank, mixing, dynamics, phases."""
