"""DICOM: files, their frames, and images as a viewer renders them."""
