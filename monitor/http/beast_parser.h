/// \file
/// Beast's parser of messages, of which no assertion ends the program. Include it instead of
/// Beast's own headers.
#pragma once

// Before Boost 1.86 the parser asserts that the end of an empty chunked body comes in one piece. A
// client that sends several would end a program that is built without NDEBUG.
#ifndef BOOST_DISABLE_ASSERTS
#define BOOST_DISABLE_ASSERTS
#endif
#include <boost/assert.hpp>
#include <boost/beast/http.hpp>
