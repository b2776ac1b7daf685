# Segments that one ns-2 TCP flow delivers over the topology of ns-2's tcl/test/test-suite-snoop.tcl:
# ns segments.tcl LL LOSS SEED SECONDS prints their number. LL is LL/LLSnoop or LL, the link layer of the base station B.
#
#   A --- 10 Mb/s, 5 ms --- B === LAN of 11 Mb/s, 2 ms === C --- 10 Mb/s, 5 ms, lossy towards D --- D
set ll [lindex $argv 0]; set loss [lindex $argv 1]; set seed [lindex $argv 2]; set seconds [lindex $argv 3]
global defaultRNG
$defaultRNG seed $seed
# As tcl/lan/ns-ll.tcl sets it, which Debian's ns does not load.
Snoop set snoopTick_ 0.1
Snoop set snoopDisable_ 0
Snoop set srtt_ 0.1
Snoop set rttvar_ 0.25
Snoop set g_ 0.125
Snoop set tailTime_ 0
Snoop set rxmitStatus_ 0
Snoop set lru_ 0
Snoop set maxbufs_ 0
LL/LLSnoop set integrate_ 0
LL/LLSnoop set delay_ 0ms
# As in test-suite-snoop.tcl.
foreach {key value} {tcpTick_ 0.1 rfc2988_ false precisionReduce_ false rtxcur_init_ 6.0 updated_rttvar_ false
  minrto_ 1 singledup_ 0 useHeaders_ false} { Agent/TCP set $key $value }
set ns [new Simulator]
foreach node {A B C D} { set $node [$ns node] }
$ns duplex-link $A $B 10Mb 5ms DropTail
$ns duplex-link $C $D 10Mb 5ms DropTail
set lan [$ns make-lan [list $C] 11Mb 2ms LL Queue/DropTail Mac/802_3]
$lan addNode [list $B] 11Mb 2ms $ll Queue/DropTail Mac/802_3
if {$loss > 0} {
 set errors [new ErrorModel]
 $errors drop-target [new Agent/Null]
 $errors ranvar [new RandomVariable/Uniform]
 $errors set rate_ $loss
 [$ns link $C $D] errormodule $errors
}
set tcp [new Agent/TCP]
set sink [new Agent/TCPSink]
$ns attach-agent $A $tcp
$ns attach-agent $D $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0.0 "$ftp start"
$ns at $seconds "puts \[expr \[\$tcp set ack_\] + 1\]; exit 0"
$ns run
