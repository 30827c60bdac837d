class Redactor:
    def __init__(self, names=(), patterns=(), keep=()):
        pass

    def redact(self, body):
        return body, 0
