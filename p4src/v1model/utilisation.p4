// How busy a port is: bytes that left by it in the last complete window of 2^n microseconds, kept per port.

control Utilisation(inout metadata_t meta, inout standard_metadata_t standard_metadata) {

    bit<48> now;                     // number of the window that the packet leaves in

    // The window that each port sent its last packet in, counted from when the switch's clock was 0.
    @id(ID_REGISTER_WINDOW)
    register<bit<48>>(PORTS) window;

    // Bytes sent in that window so far; all ones where they are too many to count.
    @id(ID_REGISTER_WINDOW_BYTES)
    register<bit<32>>(PORTS) window_bytes;

    // Bytes sent in the window before it.
    @id(ID_REGISTER_LAST_WINDOW_BYTES)
    register<bit<32>>(PORTS) last_window_bytes;

    // Windows last 2^n microseconds. After a change the first reading is void.
    @id(ID_ACTION_SET_WINDOW)
    action set_window(bit<5> n) {
        now = standard_metadata.egress_global_timestamp >> n;
    }

    // No key: the controller may set the default entry, once per switch.
    @id(ID_TABLE_UTILISATION_WINDOW)
    table utilisation_window {
        actions = { set_window; }
        default_action = set_window(14);
        size = 1;
    }

    apply {
        bit<32> port = (bit<32>) standard_metadata.egress_port;
        bit<48> begun;
        bit<32> bytes;
        utilisation_window.apply();
        window.read(begun, port);
        window_bytes.read(bytes, port);
        if (begun != now) {
            // Where windows passed without a packet, nothing was sent in the last of them.
            if (begun + 1 != now) {
                bytes = 0;
            }
            last_window_bytes.write(port, bytes);
            window.write(port, now);
            bytes = 0;
        }
        window_bytes.write(port, bytes |+| standard_metadata.packet_length |+| (bit<32>) (meta.added_words ++ 2w0));
        if (meta.is_probe == 1) {
            last_window_bytes.read(meta.last_window_bytes, port);
        }
    }
}
