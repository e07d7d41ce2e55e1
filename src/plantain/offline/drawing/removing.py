"""x"""
from plantain.offline.anatomy.maps import CannotShow
def remove(pixels, image, finding, intent, rng):
    raise CannotShow("not yet")
