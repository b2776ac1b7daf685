// Bulk transfers in ns-3: each flow over 10 Mb/s, 30 ms and a last hop of 2 Mb/s, 1 ms that loses
// every hundredth packet, in both directions; each flow has both links to itself.
//
//   bulk FLOWS SECONDS
//
// Prints one number: the segments that were delivered.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdlib>
#include <iostream>

using namespace ns3;

namespace {

constexpr uint32_t segment = 1460;
constexpr uint32_t window = 200 * segment; // more than the path and its queue hold

// NewReno by the RFCs, every segment acknowledged.
void SetRules()
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(window));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(window));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
}

NetDeviceContainer Connect(Ptr<Node> a, Ptr<Node> b, const char* rate, const char* delay, const char* queue)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));
    return link.Install(a, b);
}

void LoseOneInAHundred(Ptr<NetDevice> receiver)
{
    Ptr<RateErrorModel> loss = CreateObject<RateErrorModel>();
    loss->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    loss->SetRate(0.01);
    receiver->SetAttribute("ReceiveErrorModel", PointerValue(loss));
}

Ptr<PacketSink> AddFlow(uint32_t number, uint32_t seconds)
{
    NodeContainer nodes(3);
    NetDeviceContainer wired = Connect(nodes.Get(0), nodes.Get(1), "10Mbps", "30ms", "100000p");
    NetDeviceContainer radio = Connect(nodes.Get(1), nodes.Get(2), "2Mbps", "1ms", "50p");
    LoseOneInAHundred(radio.Get(0));
    LoseOneInAHundred(radio.Get(1));

    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses(Ipv4Address(0x0a000000 + (number << 8)), "255.255.255.128");
    Ipv4InterfaceContainer fixed = addresses.Assign(wired);
    addresses.SetBase(Ipv4Address(0x0a000080 + (number << 8)), "255.255.255.128");
    Ipv4InterfaceContainer mobile = addresses.Assign(radio);
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(nodes.Get(0)->GetObject<Ipv4>())->SetDefaultRoute(fixed.GetAddress(1), 1);
    routing.GetStaticRouting(nodes.Get(2)->GetObject<Ipv4>())->SetDefaultRoute(mobile.GetAddress(0), 1);
    // The queue is the device's alone.
    TrafficControlHelper control;
    control.Uninstall(wired);
    control.Uninstall(radio);

    constexpr uint16_t port = 5001;
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    ApplicationContainer received = sink.Install(nodes.Get(2));
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(mobile.GetAddress(1), port));
    source.SetAttribute("SendSize", UintegerValue(segment));
    ApplicationContainer sent = source.Install(nodes.Get(0));
    // Apart, so that no two flows do the same at the same instant.
    sent.Start(MilliSeconds(10 * number));
    sent.Stop(Seconds(seconds));
    return DynamicCast<PacketSink>(received.Get(0));
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 3)
    {
        std::cerr << "usage: bulk FLOWS SECONDS\n";
        return 2;
    }
    const uint32_t flows = std::atoi(argv[1]);
    const uint32_t seconds = std::atoi(argv[2]);
    SetRules();
    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t number = 0; number < flows; ++number)
    {
        sinks.push_back(AddFlow(number, seconds));
    }
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    uint64_t delivered = 0;
    for (const auto& sink : sinks)
    {
        delivered += sink->GetTotalRx() / segment;
    }
    std::cout << delivered << "\n";
    Simulator::Destroy();
    return 0;
}
