"""Human labels: read and check them, derive required tiers from outcomes, load them from the hub."""
