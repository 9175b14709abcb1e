"""Outcomes: what every tier made of every item; router scores and decisions; importers of other shapes."""
