// Saturated stations of an 802.11n cell in ns-3: datagrams of 1470 B at 65 Mb/s (20 MHz, MCS 7), 62.5 Mb/s in all.
//
//   wifi STATIONS SECONDS [down|up|hidden [AMPDU [RTS [MBPS]]]]
//
// Down by default. `up` and `hidden` send to the access point, `hidden` from stations that do not hear each other. AMPDU is the
// longest A-MPDU in bytes (65535), RTS is 1 for RTS and CTS, MBPS is what is sent in all (62.5). Prints one number: the datagrams that were
// delivered.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <cstdlib>
#include <iostream>

using namespace ns3;

namespace {

constexpr uint32_t payload = 1470;
constexpr double start = 2;

// An MPDU is never given up, and a missed Block Ack is not requested.
void SetRules(uint32_t rtsThreshold)
{
    Config::SetDefault("ns3::WifiRemoteStationManager::MaxSsrc", UintegerValue(1000000));
    Config::SetDefault("ns3::WifiRemoteStationManager::MaxSlrc", UintegerValue(1000000));
    Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold", UintegerValue(rtsThreshold));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", StringValue("160p"));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(100)));
    Config::SetDefault("ns3::QosTxop::UseExplicitBarAfterMissedBlockAck", BooleanValue(false));
    Config::SetDefault("ns3::ArpCache::AliveTimeout", TimeValue(Seconds(1000000)));
    Config::SetDefault("ns3::ArpCache::PendingQueueSize", UintegerValue(1000));
}

// All receive -40 dBm, but hidden stations nothing of each other.
Ptr<YansWifiChannel> Air(const NodeContainer& nodes, bool isHidden)
{
    Ptr<YansWifiChannel> channel = CreateObject<YansWifiChannel>();
    Ptr<MatrixPropagationLossModel> loss = CreateObject<MatrixPropagationLossModel>();
    loss->SetDefaultLoss(isHidden ? 1000 : 56);
    for (uint32_t station = 1; station < nodes.GetN(); ++station)
    {
        loss->SetLoss(nodes.Get(0)->GetObject<MobilityModel>(), nodes.Get(station)->GetObject<MobilityModel>(), 56);
    }
    channel->SetPropagationLossModel(loss);
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    return channel;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 3)
    {
        std::cerr << "usage: wifi STATIONS SECONDS [down|up|hidden [AMPDU [RTS [MBPS]]]]\n";
        return 2;
    }
    const uint32_t stations = std::atoi(argv[1]);
    const uint32_t seconds = std::atoi(argv[2]);
    const std::string way = argc > 3 ? argv[3] : "down";
    const uint32_t ampdu = argc > 4 ? std::atoi(argv[4]) : 65535;
    const double offered = (argc > 6 ? std::atof(argv[6]) : 62.5) * 1e6;
    SetRules(argc > 5 && std::atoi(argv[5]) ? 0 : 4692480);

    NodeContainer nodes(1 + stations);
    MobilityHelper().Install(nodes);
    YansWifiPhyHelper phy;
    phy.SetChannel(Air(nodes, way == "hidden"));
    phy.Set("ChannelSettings", StringValue("{36, 20, BAND_5GHZ, 0}"));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211n);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue("HtMcs7"),
                                 "ControlMode",
                                 StringValue("OfdmRate24Mbps"));
    WifiMacHelper mac;
    mac.SetType("ns3::ApWifiMac", "BE_MaxAmpduSize", UintegerValue(ampdu));
    NetDeviceContainer devices = wifi.Install(phy, mac, nodes.Get(0));
    mac.SetType("ns3::StaWifiMac", "ActiveProbing", BooleanValue(true), "BE_MaxAmpduSize", UintegerValue(ampdu));
    for (uint32_t station = 1; station <= stations; ++station)
    {
        devices.Add(wifi.Install(phy, mac, nodes.Get(station)));
    }
    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.0.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);

    std::vector<Ptr<UdpServer>> sinks;
    for (uint32_t station = 1; station <= stations; ++station)
    {
        const uint32_t from = way == "down" ? 0 : station;
        const uint32_t to = way == "down" ? station : 0;
        const uint16_t port = 5000 + station;
        ApplicationContainer sink = UdpServerHelper(port).Install(nodes.Get(to));
        UdpClientHelper source(interfaces.GetAddress(to), port);
        source.SetAttribute("MaxPackets", UintegerValue(4294967295));
        source.SetAttribute("PacketSize", UintegerValue(payload));
        source.SetAttribute("Interval", TimeValue(Seconds(8.0 * (payload + 28) * stations / offered)));
        ApplicationContainer sent = source.Install(nodes.Get(from));
        // Apart, so that no two do the same at the same instant.
        sent.Start(Seconds(start) + MicroSeconds(137 * station));
        sinks.push_back(DynamicCast<UdpServer>(sink.Get(0)));
    }
    Simulator::Stop(Seconds(start + seconds));
    Simulator::Run();
    uint64_t delivered = 0;
    for (const auto& sink : sinks)
    {
        delivered += sink->GetReceived();
    }
    std::cout << delivered << "\n";
    Simulator::Destroy();
    return 0;
}
