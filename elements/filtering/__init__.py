"""Which objects stay in a frame, and under which names: rules, and the element pymetafilter that applies them."""
