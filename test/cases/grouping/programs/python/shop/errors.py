class NotFound(Exception):
    pass


class Declined(Exception):
    pass
