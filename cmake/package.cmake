# Packages by CPack, for Debian and for distributions with RPM, from the install components `monitor`, `lib` and `dev`. scripts/package runs it.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME watchdog-monitor)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${WATCHDOG_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL monitor lib dev)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# Distributions want some files elsewhere or compressed: this moves what CMake installed.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package_layout.cmake)
set(CPACK_WATCHDOG_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_WATCHDOG_STATIC ${CMAKE_BINARY_DIR}/bin/watchdog-monitor-static)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SOURCE watchdog-monitor)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(this_version "(= ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(scripts ${PROJECT_SOURCE_DIR}/packaging/debian)

set(CPACK_DEBIAN_MONITOR_PACKAGE_NAME watchdog-monitor)
set(CPACK_DEBIAN_MONITOR_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_MONITOR_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MONITOR_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_MONITOR_PACKAGE_SUGGESTS "libwatchdog-dev, prometheus")
set(CPACK_DEBIAN_MONITOR_PACKAGE_CONTROL_EXTRA ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm)
set(CPACK_DEBIAN_MONITOR_DESCRIPTION "progress watchdog for autonomous agents
watchdog-monitor shows what AI agents do and which of them need a person. It
distinguishes a slow agent from a stuck one by what the agent reports, not by
how long it takes. It finds loops and dead agents, and sends alerts. It never
ends a run because time has passed.

The package has the program, units for systemd, clients for Python and
JavaScript, alert rules for Prometheus and a dashboard for Grafana. It has
nothing to do with hardware watchdogs, which the package watchdog serves.")

set(CPACK_DEBIAN_LIB_PACKAGE_NAME libwatchdog0)
set(CPACK_DEBIAN_LIB_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIB_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIB_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/debian/shlibs ${scripts}/triggers
    ${scripts}/lib/postinst ${scripts}/lib/postrm)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/debian/shlibs "libwatchdog 0 libwatchdog0 (>= ${CPACK_PACKAGE_VERSION})\n")
set(CPACK_DEBIAN_LIB_DESCRIPTION "reports of an agent's progress, for watchdog-monitor
This library has the C interface with which an autonomous agent reports its
progress: heartbeats, state changes, tool calls and its end. It stores reports
in a database, where watchdog-monitor reads them.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libwatchdog-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libwatchdog0 ${this_version}, libsqlite3-dev, libssl-dev, libre2-dev")
# Agents of the C++ library run programs with its helper, watchdog-exec.
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS watchdog-monitor)
set(CPACK_DEBIAN_DEV_DESCRIPTION "reports of an agent's progress, development files
This package has what is needed to build agents that watchdog-monitor watches:
headers for C and C++, the static libraries for C++, the link to the shared
library for C, and files for CMake and pkg-config.")
include(${CMAKE_CURRENT_LIST_DIR}/package_rpm.cmake)
include(CPack)
