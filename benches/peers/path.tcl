# A connection over four routers in ns-2, with cross traffic on the link in the middle: the network of
# benches/path.toml.
#
#   ns path.tcl SECONDS SCHEDULER LOSS SEED
#
# SCHEDULER  Heap, Calendar, ...
# LOSS       the probability that a data packet is lost on the last hop; bits are wrong independently,
#            and acknowledgements are lost so much less often
#
# Prints one number: the segments that were acknowledged.

lassign $argv seconds scheduler loss seed

Agent/TCP set packetSize_ 500     ;# on the wire, as headers are not added to it
Agent/TCP set useHeaders_ false
Agent/TCP set window_ 64
Agent/TCP set windowInit_ 1
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCP set singledup_ 0
Agent/TCP set tcpTick_ 0.5
Agent/TCP set minrto_ 1.0
Agent/TCP set maxrto_ 64
Agent/TCP set rtxcur_init_ 6.0

set ns [new Simulator]
$ns use-scheduler $scheduler
$defaultRNG seed $seed

proc wire {a b delay} {
    global ns
    $ns duplex-link $a $b 800kb $delay DropTail
    # ns-2 counts the packet that is being sent.
    $ns queue-limit $a $b 31
    $ns queue-limit $b $a 31
}

proc lossy {a b} {
    global ns loss
    set model [new ErrorModel]
    # By bytes, so that a packet's loss follows from its size.
    $model unit byte
    $model set rate_ [expr {1 - (1 - $loss) ** (1 / 500.0)}]
    $model ranvar [new RandomVariable/Uniform]
    $model drop-target [new Agent/Null]
    $ns link-lossmodel $model $a $b
}

set source [$ns node]
set destination [$ns node]
for {set i 1} {$i <= 4} {incr i} {
    set router($i) [$ns node]
}
wire $source $router(1) 5ms
wire $router(1) $router(2) 30ms
wire $router(2) $router(3) 30ms
wire $router(3) $router(4) 30ms
wire $router(4) $destination 5ms
lossy $router(4) $destination
lossy $destination $router(4)

set tcp [new Agent/TCP/Newreno]
set sink [new Agent/TCPSink]
$ns attach-agent $source $tcp
$ns attach-agent $destination $sink
$ns connect $tcp $sink
# "ns run" sets it to the window.
$ns at 0.0 "$tcp set ssthresh_ 20"
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0.0 "$ftp start"

# ns-2.35 has no source that is called Poisson. An exponential on-off one becomes a Poisson process if its
# bursts are one packet that takes no time: all that is left between packets is its exponential silence.
set udp [new Agent/UDP]
set null [new Agent/Null]
$ns attach-agent $router(2) $udp
$ns attach-agent $router(3) $null
$ns connect $udp $null
set cross [new Application/Traffic/Exponential]
$cross set packetSize_ 500
$cross set burst_time_ 0
$cross set idle_time_ 10ms
$cross set rate_ 1e15
$cross attach-agent $udp
$ns at 0.0 "$cross start"

proc report {} {
    global tcp
    # The first is number 0.
    puts [expr {[$tcp set ack_] + 1}]
    exit 0
}
$ns at $seconds report
$ns run
