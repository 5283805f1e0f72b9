"""What runs beside each broker: reporting, obeying, holding its lease."""
