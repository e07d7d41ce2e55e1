"""Vision-language models of transformers on this machine, as writers, judges and describers."""
