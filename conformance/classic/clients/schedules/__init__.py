"""Random schedules for clients of the classic protocol: moves of the cluster, of its members and of an application."""
