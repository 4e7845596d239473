"""The history of groups of a push coordinator. Nothing here judges what the coordinator does."""
