# Goodput of one ns-2 TCP-Linux flow over the path of ../linux/README.md: ns goodput.tcl CONTROL LOSS SEED prints Mb/s.
# Agent/TCP/Linux runs the congestion control modules of Linux 2.6 over a loss recovery of its own.
set ca [lindex $argv 0]; set loss [lindex $argv 1]; set seed [lindex $argv 2]; set dur 60
global defaultRNG
$defaultRNG seed $seed
set ns [new Simulator]
set a [$ns node]; set b [$ns node]
$ns duplex-link $a $b 10Mb 30ms DropTail
$ns queue-limit $a $b 75
$ns queue-limit $b $a 1000
if {$loss > 0} {
 set em [new ErrorModel]; $em set rate_ $loss; $em unit pkt
 set rv [new RandomVariable/Uniform]; $rv set min_ 0; $rv set max_ 1; $em ranvar $rv
 $em drop-target [new Agent/Null]
 $ns lossmodel $em $a $b
}
set tcp [new Agent/TCP/Linux]
$tcp set timestamps_ true
$tcp set window_ 100000
$tcp set packetSize_ 1448
$tcp set windowOption_ 8
set sink [new Agent/TCPSink/Sack1/DelAck]
$sink set ts_echo_rfc1323_ true
$sink set generateDSacks_ true
$ns attach-agent $a $tcp; $ns attach-agent $b $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]; $ftp attach-agent $tcp
$ns at 0 "$tcp select_ca $ca"
$ns at 0.01 "$ftp start"
proc fin {} { global sink tcp ns dur
 puts [expr [$tcp set ack_]*1448*8.0/$dur/1e6]
 exit 0 }
$ns at $dur fin
$ns run
