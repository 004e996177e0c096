/// \file
/// HTTP/1.1 messages that pass through, as far as their framing must be known.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "http/beast_parser.h"
#include "proxy/connection/message_head.h"
#include "proxy/connection/upstream_connection.h"

namespace watchdog::monitor {

/// The limit of a body's framing: a chunk's extension, or the trailers, which a parser leaves in
/// the buffer.
inline constexpr std::size_t framing_bytes_max = 16 * 1024;

inline std::string_view view(boost::beast::string_view piece) {
  return {piece.data(), piece.size()};
}

/// A body as Beast's parser wants it: what came since the last look, whatever its framing says.
struct PieceBody {
  using value_type = std::string;

  class reader {  // NOLINT(readability-identifier-naming): Beast's name for it
   public:
    template <bool is_request, class Fields>
    reader(boost::beast::http::header<is_request, Fields>& /*header*/, std::string& piece)
        : piece_(piece) {}
    void init(const boost::optional<std::uint64_t>& /*length*/, LinkError& error) { error = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, LinkError& error) {
      error = {};
      std::size_t bytes = 0;
      for (const boost::asio::const_buffer piece : boost::beast::buffers_range_ref(buffers)) {
        piece_.append(static_cast<const char*>(piece.data()), piece.size());
        bytes += piece.size();
      }
      return bytes;
    }
    void finish(LinkError& error) { error = {}; }

   private:
    std::string& piece_;
  };
};

template <class Message>
Headers headers_of(const Message& message) {
  Headers headers;
  for (const auto& field : message)
    headers.emplace_back(std::string(view(field.name_string())), std::string(view(field.value())));
  return headers;
}

/// Feeds a parser with what came, up to the end of the head at first: the parser adds trailers to
/// the head, which is read before. False: it cannot be understood.
template <class Parser>
bool feed(Parser& parser, std::string& bytes, LinkError& error) {
  const bool had_head = parser.is_header_done();
  while (!bytes.empty() && !parser.is_done() && parser.is_header_done() == had_head) {
    const auto parsed = parser.put(boost::asio::buffer(std::as_const(bytes)), error);
    bytes.erase(0, parsed);
    if (error == boost::beast::http::error::need_more) {
      error = {};
      return true;
    }
    if (error) return false;
    if (parsed == 0) return true;
  }
  return true;
}

inline std::string chunk_of(std::string_view bytes) {
  std::array<char, 17> size{};
  const auto digits = std::snprintf(size.data(), size.size(), "%zx", bytes.size());
  std::string chunk;
  chunk.reserve(bytes.size() + 24);
  return chunk.append(size.data(), static_cast<std::size_t>(digits))
      .append("\r\n")
      .append(bytes)
      .append("\r\n");
}
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

}  // namespace watchdog::monitor
