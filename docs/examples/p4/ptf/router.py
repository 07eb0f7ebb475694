"""PTF tests of router.p4 with the entries of router-entries.json."""

import ptf
from ptf import testutils
from ptf.base_tests import BaseTest

GATEWAY, H1, H2 = "08:00:00:00:01:00", "08:00:00:00:01:11", "08:00:00:00:02:22"


class RouterTest(BaseTest):
    def setUp(self):
        super().setUp()
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()


class Routed(RouterTest):
    def runTest(self):
        for length in (100, 1500):
            sent = testutils.simple_udp_packet(
                pktlen=length, eth_src=H1, eth_dst=GATEWAY, ip_src="10.0.1.1", ip_dst="10.0.2.2", ip_ttl=64
            )
            testutils.send_packet(self, 1, sent)
            routed = testutils.simple_udp_packet(
                pktlen=length, eth_src=GATEWAY, eth_dst=H2, ip_src="10.0.1.1", ip_dst="10.0.2.2", ip_ttl=63
            )
            testutils.verify_packet(self, routed, 2)
        testutils.verify_no_other_packets(self)


class Dropped(RouterTest):
    def runTest(self):
        testutils.send_packet(self, 1, testutils.simple_udp_packet(eth_dst=GATEWAY, ip_dst="10.0.9.9"))
        testutils.verify_no_other_packets(self)
