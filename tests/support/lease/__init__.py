"""A toy protocol for the engines, none of which changes for it: one lease that expires, with a fencing token."""
