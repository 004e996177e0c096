/// \file
/// The framing of messages, as far as Beast's parser is more lenient than it may be.
#pragma once

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/field.hpp>

namespace watchdog::monitor {

/// True if the body's end is known: the header names no transfer coding, or `chunked` alone. Beast
/// takes `gzip, chunked` and an HTTP/1.0 message in chunks for `chunked` too. A server in front of
/// this one may see another end there and take the rest for a request.
template <class Header>
[[nodiscard]] bool is_framing_known(const Header& header) {
  namespace http = boost::beast::http;
  const auto codings = header.count(http::field::transfer_encoding);
  if (codings == 0) return true;
  return codings == 1 && header.version() >= 11 &&
         boost::beast::iequals(header[http::field::transfer_encoding], "chunked");
}

}  // namespace watchdog::monitor
