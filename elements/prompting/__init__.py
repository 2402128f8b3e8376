"""pyprompt: asks a vision-language model about tracks or frames, beside the stream.

`watch` decides who is asked about and with which pictures, `asker` sends the requests on threads of its own within a
`budget`, `client` speaks the endpoint's protocol, and `answers` keeps what comes back until frames take it along.
"""
