// The way out: shortest paths by destination, where `flow` has not chosen, and the neighbour there.

control Routing(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {

    // ---- node: what tells this switch's choices from its neighbours' ---------------------------------------------

    // The odd number that this switch multiplies the flow hash by, so that successive switches choose independently.
    @id(ID_ACTION_SET_NODE)
    action set_node(bit<32> hash_multiplier) {
        meta.hash_multiplier = hash_multiplier;
    }

    // No key: the controller sets the default entry once per switch.
    @id(ID_TABLE_NODE)
    table node {
        actions = { set_node; }
        default_action = set_node(1);
        size = 1;
    }

    // CRC-32 of the 5-tuple times an odd number, upper 16 bits. The product mixes what a seed inside the CRC, being
    // linear, cannot.
    action hash_flow() {
        bit<32> crc;
        hash(crc, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.source, hdr.ipv4.destination, hdr.ipv4.protocol, meta.source_port, meta.destination_port },
             33w0x1_0000_0000);
        meta.ecmp_hash = (crc * meta.hash_multiplier)[31:16];
    }

    // ---- routing: with ECMP over all paths that are equally short ------------------------------------------------

    // Members of the groups that the hash chooses from.
    @id(ID_PROFILE_ECMP) @max_group_size(ECMP_GROUP_SIZE)
    action_selector(HashAlgorithm.identity, ECMP_MEMBERS, 16) ecmp;

    // Leave by this next hop.
    @id(ID_ACTION_SET_NEXT_HOP)
    action set_next_hop(next_hop_t next_hop) {
        meta.next_hop = next_hop;
    }

    // Destination prefix to a next hop or a group of them. A packet for an unknown destination is dropped.
    @id(ID_TABLE_ROUTING)
    table routing {
        key = {
            hdr.ipv4.destination: lpm @name("destination_address");
            meta.ecmp_hash: selector;
        }
        actions = { set_next_hop; @defaultonly NoAction; }
        implementation = ecmp;
        size = ROUTING_TABLE_SIZE;
    }

    action drop_without_route() {
        meta.drop_reason = DROP_NO_ROUTE;
    }

    // ---- next_hop: out of the switch -----------------------------------------------------------------------------

    // Leave by this port, readdressed to the neighbour there.
    @id(ID_ACTION_FORWARD)
    action forward(bit<9> port, mac_address_t source_mac, mac_address_t destination_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.source = source_mac;
        hdr.ethernet.destination = destination_mac;
        hdr.ipv4.time_to_live = hdr.ipv4.time_to_live - 1;
    }

    // There is no such next hop: drop.
    action drop() {
        meta.drop_reason = DROP_NO_NEXT_HOP;
    }

    // One row per neighbour.
    @id(ID_TABLE_NEXT_HOP)
    table next_hop {
        key = { meta.next_hop: exact @name("next_hop"); }
        actions = { forward; @defaultonly drop; }
        const default_action = drop();
        size = NEXT_HOP_TABLE_SIZE;
    }

    apply {
        if (meta.next_hop == 0) {
            node.apply();
            hash_flow();
            if (routing.apply().miss) {
                drop_without_route();
            }
        }
        if (meta.drop_reason == DROP_NOTHING) {
            next_hop.apply();
        }
    }
}
