#include "api/compression.h"

#include <zlib.h>

#include <optional>
#include <utility>

namespace watchdog::monitor {
namespace {

/// Returns nothing if there is no memory for it.
std::optional<std::string> gzipped(const std::string& text) {
  constexpr int gzip_only = 16 + MAX_WBITS;
  constexpr int memory_level = 8;
  z_stream stream{};
  // The quickest level: pages repeat themselves so much that another saves little.
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, gzip_only, memory_level,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    return std::nullopt;
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  // zlib's interface is older than const; it only reads.
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<unsigned char*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool is_whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return is_whole ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

Response compressed(Response response, const Request& request) {
  response.extra_headers += "Vary: Accept-Encoding\r\n";
  if (request.accept_encoding.find("gzip") == std::string::npos) return response;
  auto body = gzipped(response.body);
  if (!body) return response;
  response.body = std::move(*body);
  response.extra_headers += "Content-Encoding: gzip\r\n";
  return response;
}

}  // namespace watchdog::monitor
