"""Finding probes: small classifiers that a user trained on labelled pictures; `probe/FOLDER` judges with one."""
