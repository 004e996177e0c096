/// \file
/// One connection, with TLS or without.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace watchdog::monitor {

using LinkSocket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;
using LinkError = boost::system::error_code;

/// The caller of an operation keeps this alive until it is done. At most one read and one write at
/// a time. Use from one thread at a time.
class UpstreamConnection {
 public:
  using Done = std::function<void(const LinkError&, std::size_t bytes)>;

  explicit UpstreamConnection(LinkSocket socket);

  /// To one of these addresses, the first that answers. `done` may be called before this returns,
  /// but never with an error.
  void connect(std::vector<boost::asio::ip::tcp::endpoint> addresses, Done done);
  /// The handshakes of either side. Of a server's certificate `host` must be the name.
  void begin_tls_as_server(boost::asio::ssl::context& context, Done done);
  void begin_tls_as_client(boost::asio::ssl::context& context, const std::string& host, Done done);
  /// Returns why the server is not trusted; empty: it is, or there is no TLS.
  [[nodiscard]] std::string distrust();

  /// Sends small pieces at once.
  void tune();
  /// From now on a peer that vanishes without a word is noticed within some minutes.
  void watch_peer();
  /// True if the peer has sent nothing that was not read, and no end. If not, the connection cannot
  /// be used any more. REQUIRES: no operation is under way.
  [[nodiscard]] bool is_quiet();
  [[nodiscard]] std::string peer() const;
  [[nodiscard]] std::uint16_t peer_port() const;  ///< 0: it is gone.
  [[nodiscard]] std::uint16_t own_port() const;   ///< Likewise.

  /// Reads what is available, at least one byte.
  void read(boost::asio::mutable_buffer into, Done done);
  /// All of it. `done` may be called before this returns, but never with an error.
  void write(std::array<boost::asio::const_buffer, 2> pieces, Done done);
  /// Says that nothing more comes; what the peer still sends can be read. With TLS it closes.
  void end_writing();
  /// Operations under way end with an error.
  void close();
  /// The peer sees a broken connection rather than an end.
  void reset();

 private:
  void connect_next(LinkError error, Done done);
  [[nodiscard]] LinkError pending_error();

  LinkSocket socket_;
  std::vector<boost::asio::ip::tcp::endpoint> addresses_;  ///< Not tried yet.
  bool is_watched_ = false;
  std::optional<boost::asio::ssl::stream<LinkSocket&>> tls_;
};

}  // namespace watchdog::monitor
