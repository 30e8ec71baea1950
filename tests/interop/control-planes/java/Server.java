// SPDX-License-Identifier: Apache-2.0
// A control plane on java-control-plane, with a group of clients for each cluster of nodes.
//
// It reads one JSON object per line: {"group": ..., "version": ..., "resources": [...]} is a group's next snapshot. It writes one JSON object
// per line: where it listens, and each rejection. It ends when its standard input is closed.

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import io.envoyproxy.controlplane.cache.NodeGroup;
import io.envoyproxy.controlplane.cache.v3.SimpleCache;
import io.envoyproxy.controlplane.cache.v3.Snapshot;
import io.envoyproxy.controlplane.server.DiscoveryServerCallbacks;
import io.envoyproxy.controlplane.server.V3DiscoveryServer;
import io.envoyproxy.envoy.config.cluster.v3.Cluster;
import io.envoyproxy.envoy.config.endpoint.v3.ClusterLoadAssignment;
import io.envoyproxy.envoy.config.listener.v3.Listener;
import io.envoyproxy.envoy.config.route.v3.RouteConfiguration;
import io.envoyproxy.envoy.extensions.filters.http.router.v3.Router;
import io.envoyproxy.envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager;
import io.envoyproxy.envoy.service.discovery.v3.DeltaDiscoveryRequest;
import io.envoyproxy.envoy.service.discovery.v3.DiscoveryRequest;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;

public final class Server {
  private static final JsonFormat.Parser PARSER = JsonFormat.parser().usingTypeRegistry(
      JsonFormat.TypeRegistry.newBuilder().add(HttpConnectionManager.getDescriptor()).add(Router.getDescriptor()).build());

  private Server() {}

  public static void main(String[] arguments) throws Exception {
    SimpleCache<String> cache = new SimpleCache<>((NodeGroup<String>) node -> node.getCluster());
    V3DiscoveryServer server = new V3DiscoveryServer(new Rejections(), cache);
    var listening = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])))
        .addService(server.getAggregatedDiscoveryServiceImpl()).build().start();
    say("listening", String.valueOf(listening.getPort()));
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonObject told = JsonParser.parseString(line).getAsJsonObject();
      cache.setSnapshot(told.get("group").getAsString(), snapshot(told));
      say("set", told.get("version").getAsString());
    }
    listening.shutdownNow();
    System.exit(0);
  }

  private static Snapshot snapshot(JsonObject told) throws Exception {
    List<Cluster> clusters = new ArrayList<>();
    List<ClusterLoadAssignment> endpoints = new ArrayList<>();
    List<Listener> listeners = new ArrayList<>();
    List<RouteConfiguration> routes = new ArrayList<>();
    for (JsonElement element : told.getAsJsonArray("resources")) {
      JsonObject resource = element.getAsJsonObject();
      String type = resource.remove("@type").getAsString();
      String kind = type.substring(type.lastIndexOf('.') + 1);
      switch (kind) {
        case "Cluster" -> clusters.add((Cluster) read(resource, Cluster.newBuilder()));
        case "ClusterLoadAssignment" ->
            endpoints.add((ClusterLoadAssignment) read(resource, ClusterLoadAssignment.newBuilder()));
        case "Listener" -> listeners.add((Listener) read(resource, Listener.newBuilder()));
        case "RouteConfiguration" -> routes.add((RouteConfiguration) read(resource, RouteConfiguration.newBuilder()));
        default -> throw new IllegalArgumentException(type);
      }
    }
    return Snapshot.create(clusters, endpoints, listeners, routes, List.of(), told.get("version").getAsString());
  }

  private static Message read(JsonObject json, Message.Builder into) throws Exception {
    PARSER.merge(json.toString(), into);
    return into.build();
  }

  private static void say(String what, String more) {
    JsonObject said = new JsonObject();
    said.addProperty("event", what);
    said.addProperty("detail", more);
    synchronized (System.out) {
      System.out.println(said);
      System.out.flush();
    }
  }

  private static final class Rejections implements DiscoveryServerCallbacks {
    @Override
    public void onV3StreamRequest(long stream, DiscoveryRequest request) {
      if (request.hasErrorDetail()) {
        say("rejected", request.getNode().getId() + ": " + request.getErrorDetail().getMessage());
      }
    }

    @Override
    public void onV3StreamDeltaRequest(long stream, DeltaDiscoveryRequest request) {
      if (request.hasErrorDetail()) {
        say("rejected", request.getNode().getId() + ": " + request.getErrorDetail().getMessage());
      }
    }
  }
}
