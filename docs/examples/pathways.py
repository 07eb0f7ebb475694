"""Figure 2 of the Pathways paper: sharded computations on three slices of two islands."""

import numpy

import runtime as rt


def get_devices(n):
    """Allocate n virtual devices on an island."""
    device_set = rt.make_virtual_device_set()
    return device_set.add_slice(devices=n)


with rt.local(islands=2, hosts=2, devices=2):
    a = rt.pmap(lambda x: x * 2.0, devices=get_devices(2))
    b = rt.pmap(lambda x: x + 1.0, devices=get_devices(2))
    c = rt.pmap(lambda x: x / 2.0, devices=get_devices(2))

    @rt.program  # program tracing (optional)
    def f(v):
        x = a(v)
        y = b(x)
        z = a(c(x))
        return (y, z)

    print(f(numpy.array([1.0, 2.0])))
    # output: (array([3., 5.]), array([2., 4.]))
