// Ingress: which way a packet leaves, and in which of the port's eight queues it waits.
//
//   node ──► flow ──hit──► (level: flow's, else DSCP's) ──► routing, unless flow chose ──► next_hop ──► queue
//             └──miss─► level from DSCP ─────────────────►

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {

    // ---- node: what tells this switch from its neighbours -------------------------------------------------------

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

    // ---- flow: the Plan's decision for one flow ------------------------------------------------------------------

    // Packets and bytes of one flow, per entry.
    @id(ID_DIRECT_COUNTER_FLOW)
    direct_counter(CounterType.packets_and_bytes) flow_counter;

    // Send the flow to this next hop instead of where the hash would; its level stays that of its DSCP.
    @id(ID_ACTION_STEER)
    action steer(next_hop_t next_hop) {
        meta.next_hop = next_hop;
        flow_counter.count();
    }

    // Let the flow wait at this level; the hash chooses its way. Later switches read the level from the DSCP.
    @id(ID_ACTION_PRIORITISE)
    action prioritise(level_t level) {
        meta.level = level;
        flow_counter.count();
    }

    // Both at once.
    @id(ID_ACTION_STEER_AND_PRIORITISE)
    action steer_and_prioritise(next_hop_t next_hop, level_t level) {
        meta.next_hop = next_hop;
        meta.level = level;
        flow_counter.count();
    }

    // One entry per flow that must not take what routing and its DSCP would give it.
    @id(ID_TABLE_FLOW)
    table flow {
        key = {
            hdr.ipv4.source: exact @name("source_address");
            hdr.ipv4.destination: exact @name("destination_address");
            hdr.ipv4.protocol: exact @name("protocol");
            meta.source_port: exact @name("source_port");
            meta.destination_port: exact @name("destination_port");
        }
        actions = { steer; prioritise; steer_and_prioritise; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = flow_counter;
        size = FLOW_TABLE_SIZE;
    }

    // ---- level: what the sender or an earlier switch asks for ----------------------------------------------------

    // Packets with this DSCP wait at this level.
    @id(ID_ACTION_SET_LEVEL)
    action set_level(level_t level) {
        meta.level = level;
    }

    // DSCP to level; what is not listed has level 0. Read before `flow`, which overrides it.
    @id(ID_TABLE_LEVEL)
    table level {
        key = { hdr.ipv4.dscp: exact @name("dscp"); }
        actions = { set_level; }
        const default_action = set_level(0);
        size = 64;
    }

    // ---- routing: shortest paths, with ECMP over all that are equally short --------------------------------------

    // Members of the groups that the hash chooses from.
    @id(ID_PROFILE_ECMP) @max_group_size(ECMP_GROUP_SIZE)
    action_selector(HashAlgorithm.identity, ECMP_MEMBERS, 16) ecmp;

    // Leave by this next hop.
    @id(ID_ACTION_SET_NEXT_HOP)
    action set_next_hop(next_hop_t next_hop) {
        meta.next_hop = next_hop;
    }

    // Destination prefix to a next hop or a group of them. A packet for an unknown destination is dropped below.
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

    // ---- next_hop: out of the switch -----------------------------------------------------------------------------

    // Leave by this port, readdressed to the neighbour there.
    @id(ID_ACTION_FORWARD)
    action forward(bit<9> port, mac_address_t source_mac, mac_address_t destination_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.source = source_mac;
        hdr.ethernet.destination = destination_mac;
        hdr.ipv4.time_to_live = hdr.ipv4.time_to_live - 1;
    }

    // Drop: no way, no time to live, or nothing this pipeline forwards.
    action drop() {
        mark_to_drop(standard_metadata);
    }

    // One row per neighbour.
    @id(ID_TABLE_NEXT_HOP)
    table next_hop {
        key = { meta.next_hop: exact @name("next_hop"); }
        actions = { forward; @defaultonly drop; }
        const default_action = drop();
        size = NEXT_HOP_TABLE_SIZE;
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

    apply {
        if (!hdr.ipv4.isValid() || standard_metadata.checksum_error == 1 || hdr.ipv4.time_to_live <= 1) {
            drop();
            return;
        }
        node.apply();
        level.apply();
        flow.apply();
        if (meta.next_hop == 0) {
            hash_flow();
            routing.apply();
        }
        next_hop.apply();
        hdr.ipv4.dscp = meta.level ++ hdr.ipv4.dscp[2:0];
        standard_metadata.priority = meta.level;
    }
}
