"""Number of instances for a load: from measurements to a table, a recommendation and a scaling target."""
