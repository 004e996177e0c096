# watchdog-monitor-static and watchdog-exec are what the tarball and the image carry: programs that need no file of the
# system but certificates. The target links the objects of watchdog-monitor once more, so it compiles nothing.
#
# Why glibc: Debian has no C++ library for musl. Since 2.34 glibc contains the resolvers of files and DNS, so a static
# program resolves names without loading a library. Other sources of names (LDAP, mDNS) need the dynamic program.
#
# Static libraries do not name those that they need, and newer versions need others: RE2 needs Abseil, OpenSSL zstd. pkg-config
# knows them.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --static --libs-only-l re2 libssl libcrypto sqlite3 zlib
                  OUTPUT_VARIABLE needs ERROR_QUIET)
  string(REGEX MATCHALL "[^ \n]+" needs "${needs}")
  list(TRANSFORM needs REPLACE "^-l" "")
endif()
set(names c ssl crypto re2 sqlite3 z ${needs})
if(ZSTD_INCLUDE_DIR AND ZSTD_LIBRARY)
  list(APPEND names zstd)
endif()
if(BROTLI_INCLUDE_DIR AND BROTLI_LIBRARY)
  list(APPEND names brotlidec brotlicommon)
endif()
if(TARGET Boost::url)
  list(APPEND names boost_url)
endif()
list(REMOVE_ITEM names atomic dl m pthread rt)  # parts of the C library and of the compiler
list(REMOVE_DUPLICATES names)
foreach(name ${names})
  find_library(WATCHDOG_STATIC_${name} NAMES lib${name}.a)
  list(APPEND static_libraries ${WATCHDOG_STATIC_${name}})
endforeach()
set(missing ${static_libraries})
list(FILTER missing INCLUDE REGEX NOTFOUND)
if(missing)
  message(STATUS "watchdog-monitor-static is left out: static libraries are missing (${missing})")
  return()
endif()
list(REMOVE_ITEM static_libraries ${WATCHDOG_STATIC_c})  # the compiler's own last word
list(JOIN static_libraries , static_libraries)

# Debian's libcurl and libpq need libraries that have no static form, so this program cannot send e-mail or use
# PostgreSQL, and says so.
foreach(target ${WATCHDOG_STATIC_PARTS} watchdog-monitor)
  list(APPEND static_objects $<FILTER:$<TARGET_OBJECTS:${target}>,EXCLUDE,/alerts/mail[.]cpp>)
endforeach()
add_executable(watchdog-monitor-static EXCLUDE_FROM_ALL ${static_objects} alerts/mail_unavailable.cpp postgres/unavailable.cpp)
target_include_directories(watchdog-monitor-static PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/libwatchdog/include
                           ${PROJECT_SOURCE_DIR}/libwatchdog/src)
target_link_options(watchdog-monitor-static PRIVATE -static-pie LINKER:--gc-sections,--no-undefined)
# Places that hold addresses in a tenth of the bytes: 0.8 MB less.
include(CheckLinkerFlag)
check_linker_flag(CXX LINKER:-z,pack-relative-relocs WATCHDOG_PACKS_RELOCATIONS)
if(WATCHDOG_PACKS_RELOCATIONS)
  target_link_options(watchdog-monitor-static PRIVATE LINKER:-z,pack-relative-relocs)
endif()
target_link_libraries(watchdog-monitor-static PRIVATE $<LINK_GROUP:RESCAN,${static_libraries}> watchdog_build)
set_target_properties(watchdog-monitor-static PROPERTIES LINKER_LANGUAGE CXX
                      RULE_LAUNCH_LINK ${CMAKE_CURRENT_LIST_DIR}/static_link.sh
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
