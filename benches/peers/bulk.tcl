# Bulk transfers in ns-2: each flow over 10 Mb/s, 30 ms and a last hop of 2 Mb/s, 1 ms that loses
# every hundredth packet, in both directions; each flow has both links to itself.
#
#   ns bulk.tcl FLOWS SECONDS RULES SCHEDULER
#
# RULES      rfc: as near to the RFCs as ns-2's variables can bring it; ns2: its own defaults
# SCHEDULER  Heap, Calendar, ...
#
# Prints one number: the segments that were acknowledged.

lassign $argv flows seconds rules scheduler

Agent/TCP set packetSize_ 1500    ;# on the wire, as headers are not added to it
Agent/TCP set useHeaders_ false
Agent/TCP set window_ 200         ;# more than the path and its queue hold
if {$rules eq "rfc"} {
    Agent/TCP set windowInit_ 10  ;# RFC 6928
    Agent/TCP set delay_growth_ false
    Agent/TCP set singledup_ 1    ;# RFC 3042
    Agent/TCP set minrto_ 1.0     ;# RFC 6298
    Agent/TCP set rtxcur_init_ 1.0
    Agent/TCP set tcpTick_ 0.001
    Agent/TCP/Newreno set newreno_changes1_ 1
    Agent/TCP/Newreno set partial_window_deflation_ 1
} elseif {$rules ne "ns2"} {
    puts stderr "rules are rfc or ns2"
    exit 2
}

set ns [new Simulator]
$ns use-scheduler $scheduler
# Routes by hand: to compute them for 100 flows would take longer than the run.
$ns rtproto Manual

proc wire {a b rate delay limit} {
    global ns
    $ns simplex-link $a $b $rate $delay DropTail
    $ns queue-limit $a $b $limit
}

proc lossy {a b} {
    global ns
    set loss [new ErrorModel]
    $loss unit pkt
    $loss set rate_ 0.01
    $loss ranvar [new RandomVariable/Uniform]
    $loss drop-target [new Agent/Null]
    $ns link-lossmodel $loss $a $b
}

for {set i 0} {$i < $flows} {incr i} {
    set fixed [$ns node]; set base [$ns node]; set mobile [$ns node]
    wire $fixed $base 10Mb 30ms 100000
    wire $base $fixed 10Mb 30ms 100000
    # ns-2 counts the packet that is being sent.
    wire $base $mobile 2Mb 1ms 51
    wire $mobile $base 2Mb 1ms 51
    lossy $base $mobile
    lossy $mobile $base
    [$fixed get-module Manual] add-route-to-adj-node -default $base
    [$mobile get-module Manual] add-route-to-adj-node -default $base
    [$base get-module Manual] add-route-to-adj-node $fixed
    [$base get-module Manual] add-route-to-adj-node $mobile
    set tcp [new Agent/TCP/Newreno]
    set sink [new Agent/TCPSink]
    $ns attach-agent $fixed $tcp
    $ns attach-agent $mobile $sink
    $ns connect $tcp $sink
    if {$rules eq "rfc"} {
        # "ns run" sets it to the window.
        $ns at 0.0 "$tcp set ssthresh_ 1000000"
    }
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    # Apart, so that no two flows do the same at the same instant.
    $ns at [expr {0.01 * $i}] "$ftp start"
    lappend senders $tcp
}

proc report {} {
    global senders
    set delivered 0
    foreach tcp $senders {
        # Number 0 is SYN.
        incr delivered [$tcp set ack_]
    }
    puts $delivered
    exit 0
}
$ns at $seconds report
$ns run
