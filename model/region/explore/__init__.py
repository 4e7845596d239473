"""The consistent region as a system to search: operators, their group, the bean, the region's controller."""
