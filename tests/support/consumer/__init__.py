"""A KIP-848 group from the point of view of one member, which the engines prove: the door for the next kernels."""
