"""Several controllers for one fabric, of which one leads: only it plans and writes."""
