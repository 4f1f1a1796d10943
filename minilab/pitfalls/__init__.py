"""Each trap of contrastive training beside its repair, on the lab's real networks."""
