"""Engines: what runs a network. Each imports its library only when it is used."""
