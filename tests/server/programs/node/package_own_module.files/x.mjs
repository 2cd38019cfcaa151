export default ["of x"];
