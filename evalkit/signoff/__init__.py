"""Sign-off: runs gathered under a policy, one document, signatures on it, and two runs compared."""
