"""Programs over islands on hosts of an emulated fabric, in wall-clock time, under the policies of the controller."""
