"""Runs the usage lines of the producer as the specification prints them, and closes the connection."""
import specification

(specification.client if hasattr(specification, "client") else specification).connection.close()
