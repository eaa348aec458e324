"""How many instances a load needs: from measurements to a table, a recommendation and a scaling target."""
