"""Runs the producer's usage lines as the specification has them, then hangs up."""
import specification

(specification.client if hasattr(specification, "client") else specification).connection.close()
