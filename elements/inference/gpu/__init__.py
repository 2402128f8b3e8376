"""Frames and results on a torch device: the whole batch at once, one copy to the host, one wait."""
