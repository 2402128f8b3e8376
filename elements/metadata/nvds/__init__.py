"""DeepStream's metadata library (libnvds_meta.so) by ctypes, for what pyservicemaker cannot do.

`layout` has the C structs, `binding` the functions and the self-test, `callbacks` the copy and release functions of
user metadata, `handles` the way from a pyservicemaker handle to its struct, `editor` what `elements.metadata.edit`
offers.
"""
