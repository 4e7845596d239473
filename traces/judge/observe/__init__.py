"""What a trace shows apart from groups' responses: topics, coordinators, log steps, and groups first seen half-way."""
