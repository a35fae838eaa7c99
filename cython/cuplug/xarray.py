# SPDX-License-Identifier: Apache-2.0
"""Element-wise operators on xarray's arrays and data sets, delegated by `cuplug.ops`."""

from cuplug._integration.frameworks.xarray_call import call_on_labelled as hand_on

__all__ = ["hand_on"]
