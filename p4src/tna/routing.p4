// The way out: shortest paths by destination, where `flow` has not chosen, and the neighbour there.

control Routing(inout ingress_headers_t hdr, inout ingress_metadata_t meta,
                inout ingress_intrinsic_metadata_for_tm_t for_traffic_manager) {

    @name(".ingress") HashBoxes() hash_boxes;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) crc32;

    // ---- node: what tells this switch's choices from its neighbours' ---------------------------------------------

    // The number that this switch salts the flow hash with, so that successive switches choose independently.
    @id(ID_ACTION_SET_NODE)
    action set_node(bit<32> hash_salt) {
        meta.crc = meta.crc ^ hash_salt;
    }

    // No key: the controller sets the default entry once per switch.
    @id(ID_TABLE_NODE)
    table node {
        actions = { set_node; }
        default_action = set_node(1);
        size = 1;
    }

    // The chip does not multiply, and a CRC is linear, whatever its seed. The salted CRC of the 5-tuple goes through
    // four boxes of random numbers instead.
    action hash_flow() {
        meta.crc = crc32.get({ hdr.ipv4.source, hdr.ipv4.destination, hdr.ipv4.protocol, meta.source_port,
                               meta.destination_port });
    }

    // ---- routing: with ECMP over all paths that are equally short ------------------------------------------------

    // Leave by this next hop.
    @id(ID_ACTION_SET_NEXT_HOP)
    action set_next_hop(next_hop_t next_hop) {
        meta.next_hop = next_hop;
    }

    // Leave by the next hop in a slot of this group: the one that the hash says, of as many as the mask has.
    @id(ID_ACTION_SET_ECMP_GROUP)
    action set_ecmp_group(ecmp_group_t group, ecmp_slot_t slot_mask) {
        meta.ecmp_group = group;
        meta.ecmp_slot = meta.ecmp_hash[9:0] & slot_mask;
        meta.has_ecmp_group = 1;
    }

    // Destination prefix to a next hop or a group of them. A packet for an unknown destination is dropped.
    @id(ID_TABLE_ROUTING)
    table routing {
        key = { hdr.ipv4.destination: lpm @name("destination_address"); }
        actions = { set_next_hop; set_ecmp_group; @defaultonly NoAction; }
        const default_action = NoAction();
        size = ROUTING_TABLE_SIZE;
    }

    // The groups: slot n of a group of m members is its member n mod m. A selector's own choice nobody could foretell.
    @id(ID_TABLE_ECMP)
    table ecmp {
        key = {
            meta.ecmp_group: exact @name("group");
            meta.ecmp_slot: exact @name("slot");
        }
        actions = { set_next_hop; @defaultonly NoAction; }
        const default_action = NoAction();
        size = ECMP_TABLE_SIZE;
    }

    action drop_without_route() {
        meta.drop_reason = DROP_NO_ROUTE;
    }

    // ---- next_hop: out of the switch -----------------------------------------------------------------------------

    // Leave by this port, readdressed to the neighbour there.
    @id(ID_ACTION_FORWARD)
    action forward(bit<9> port, mac_address_t source_mac, mac_address_t destination_mac) {
        for_traffic_manager.ucast_egress_port = port;
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
        hash_flow();
        node.apply();
        hash_boxes.apply(meta);
        if (meta.next_hop == 0) {
            if (routing.apply().miss) {
                drop_without_route();
            } else if (meta.has_ecmp_group == 1) {
                ecmp.apply();
            }
        }
        if (meta.drop_reason == DROP_NOTHING) {
            next_hop.apply();
        }
    }
}
