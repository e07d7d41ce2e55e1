"""DICOM: files as they are found, their frames, and pictures as a viewer shows them."""
