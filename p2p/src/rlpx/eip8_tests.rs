//! The handshake vectors of EIP-8.

use alloy_primitives::hex;

use super::ecies;
use super::handshake::{HandshakeSecrets, Initiator, Responder};
use super::key::{NodeKey, scalar};
use super::secrets::{HandshakeRole, Transcript};
use super::{AuthForm, Frame};

const STATIC_A: [u8; 32] = hex!("49a7b37aa6f6645917e7b807e9d1c00d4fa71f18343b0d4122a4d2df64dd6fee");
const STATIC_B: [u8; 32] = hex!("b71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291");
const EPHEMERAL_A: [u8; 32] = hex!("869d6ecf5211f1cc60418a13b9d870b22959d0c16f02bec714c960dd2298a32d");
const EPHEMERAL_B: [u8; 32] = hex!("e238eb8e04fee6511ab04c6dd3c89ce097b11f25d584863ac2b6d5b35b1847e4");
const NONCE_A: [u8; 32] = hex!("7e968bba13b6c50e2c4cd7f241cc0d64d1ac25c7f5952df231ac6a2bda8ee5d6");
const NONCE_B: [u8; 32] = hex!("559aead08264d5795d3909718cdd05abd49572e84fe55590eef31a88a08fdffd");

const AUTH_1: &[u8] = &hex!(
    "048ca79ad18e4b0659fab4853fe5bc58eb83992980f4c9cc147d2aa31532efd29a3d3dc6a3d89eaf913150cfc777ce0c"
    "e4af2758bf4810235f6e6ceccfee1acc6b22c005e9e3a49d6448610a58e98744ba3ac0399e82692d67c1f58849050b30"
    "24e21a52c9d3b01d871ff5f210817912773e610443a9ef142e91cdba0bd77b5fdf0769b05671fc35f83d83e4d3b0b000"
    "c6b2a1b1bba89e0fc51bf4e460df3105c444f14be226458940d6061c296350937ffd5e3acaceeaaefd3c6f74be8e23e0"
    "f45163cc7ebd76220f0128410fd05250273156d548a414444ae2f7dea4dfca2d43c057adb701a715bf59f6fb66b2d1d2"
    "0f2c703f851cbf5ac47396d9ca65b6260bd141ac4d53e2de585a73d1750780db4c9ee4cd4d225173a4592ee77e2bd94d"
    "0be3691f3b406f9bba9b591fc63facc016bfa8"
);
const AUTH_2: &[u8] = &hex!(
    "01b304ab7578555167be8154d5cc456f567d5ba302662433674222360f08d5f1534499d3678b513b0fca474f3a514b18"
    "e75683032eb63fccb16c156dc6eb2c0b1593f0d84ac74f6e475f1b8d56116b849634a8c458705bf83a626ea0384d4d73"
    "41aae591fae42ce6bd5c850bfe0b999a694a49bbbaf3ef6cda61110601d3b4c02ab6c30437257a6e0117792631a4b47c"
    "1d52fc0f8f89caadeb7d02770bf999cc147d2df3b62e1ffb2c9d8c125a3984865356266bca11ce7d3a688663a51d82de"
    "faa8aad69da39ab6d5470e81ec5f2a7a47fb865ff7cca21516f9299a07b1bc63ba56c7a1a892112841ca44b6e0034dee"
    "70c9adabc15d76a54f443593fafdc3b27af8059703f88928e199cb122362a4b35f62386da7caad09c001edaeb5f8a06d"
    "2b26fb6cb93c52a9fca51853b68193916982358fe1e5369e249875bb8d0d0ec36f917bc5e1eafd5896d46bd61ff23f1a"
    "863a8a8dcd54c7b109b771c8e61ec9c8908c733c0263440e2aa067241aaa433f0bb053c7b31a838504b148f570c0ad62"
    "837129e547678c5190341e4f1693956c3bf7678318e2d5b5340c9e488eefea198576344afbdf66db5f51204a6961a63c"
    "e072c8926c"
);
const AUTH_3: &[u8] = &hex!(
    "01b8044c6c312173685d1edd268aa95e1d495474c6959bcdd10067ba4c9013df9e40ff45f5bfd6f72471f93a91b493f8"
    "e00abc4b80f682973de715d77ba3a005a242eb859f9a211d93a347fa64b597bf280a6b88e26299cf263b01b8dfdb7122"
    "78464fd1c25840b995e84d367d743f66c0e54a586725b7bbf12acca27170ae3283c1073adda4b6d79f27656993aefccf"
    "16e0d0409fe07db2dc398a1b7e8ee93bcd181485fd332f381d6a050fba4c7641a5112ac1b0b61168d20f01b479e19adf"
    "7fdbfa0905f63352bfc7e23cf3357657455119d879c78d3cf8c8c06375f3f7d4861aa02a122467e069acaf513025ff19"
    "6641f6d2810ce493f51bee9c966b15c5043505350392b57645385a18c78f14669cc4d960446c17571b7c5d725021babb"
    "cd786957f3d17089c084907bda22c2b2675b4378b114c601d858802a55345a15116bc61da4193996187ed70d16730e9a"
    "e6b3bb8787ebcaea1871d850997ddc08b4f4ea668fbf37407ac044b55be0908ecb94d4ed172ece66fd31bfdadf2b97a8"
    "bc690163ee11f5b575a4b44e36e2bfb2f0fce91676fd64c7773bac6a003f481fddd0bae0a1f31aa27504e2a533af4cef"
    "3b623f4791b2cca6d490"
);
const ACK_1: &[u8] = &hex!(
    "049f8abcfa9c0dc65b982e98af921bc0ba6e4243169348a236abe9df5f93aa69d99cadddaa387662b0ff2c08e9006d5a"
    "11a278b1b3331e5aaabf0a32f01281b6f4ede0e09a2d5f585b26513cb794d9635a57563921c04a9090b4f14ee42be1a5"
    "461049af4ea7a7f49bf4c97a352d39c8d02ee4acc416388c1c66cec761d2bc1c72da6ba143477f049c9d2dde846c252c"
    "111b904f630ac98e51609b3b1f58168ddca6505b7196532e5f85b259a20c45e1979491683fee108e9660edbf38f3add4"
    "89ae73e3dda2c71bd1497113d5c755e942d1"
);
const ACK_2: &[u8] = &hex!(
    "01ea0451958701280a56482929d3b0757da8f7fbe5286784beead59d95089c217c9b917788989470b0e330cc6e4fb383"
    "c0340ed85fab836ec9fb8a49672712aeabbdfd1e837c1ff4cace34311cd7f4de05d59279e3524ab26ef753a0095637ac"
    "88f2b499b9914b5f64e143eae548a1066e14cd2f4bd7f814c4652f11b254f8a2d0191e2f5546fae6055694aed14d906d"
    "f79ad3b407d94692694e259191cde171ad542fc588fa2b7333313d82a9f887332f1dfc36cea03f831cb9a23fea05b33d"
    "eb999e85489e645f6aab1872475d488d7bd6c7c120caf28dbfc5d6833888155ed69d34dbdc39c1f299be1057810f34fb"
    "e754d021bfca14dc989753d61c413d261934e1a9c67ee060a25eefb54e81a4d14baff922180c395d3f998d70f46f6b58"
    "306f969627ae364497e73fc27f6d17ae45a413d322cb8814276be6ddd13b885b201b943213656cde498fa0e9ddc8e0b8"
    "f8a53824fbd82254f3e2c17e8eaea009c38b4aa0a3f306e8797db43c25d68e86f262e564086f59a2fc60511c42abfb30"
    "57c247a8a8fe4fb3ccbadde17514b7ac8000cdb6a912778426260c47f38919a91f25f4b5ffb455d6aaaf150f7e5529c1"
    "00ce62d6d92826a71778d809bdf60232ae21ce8a437eca8223f45ac37f6487452ce626f549b3b5fdee26afd2072e4bc7"
    "5833c2464c805246155289f4"
);
const ACK_3: &[u8] = &hex!(
    "01f004076e58aae772bb101ab1a8e64e01ee96e64857ce82b1113817c6cdd52c09d26f7b90981cd7ae835aeac72e1573"
    "b8a0225dd56d157a010846d888dac7464baf53f2ad4e3d584531fa203658fab03a06c9fd5e35737e417bc28c1cbf5e5d"
    "fc666de7090f69c3b29754725f84f75382891c561040ea1ddc0d8f381ed1b9d0d4ad2a0ec021421d847820d6fa0ba66e"
    "af58175f1b235e851c7e2124069fbc202888ddb3ac4d56bcbd1b9b7eab59e78f2e2d400905050f4a92dec1c4bdf797b3"
    "fc9b2f8e84a482f3d800386186712dae00d5c386ec9387a5e9c9a1aca5a573ca91082c7d68421f388e79127a5177d4f8"
    "590237364fd348c9611fa39f78dcdceee3f390f07991b7b47e1daa3ebcb6ccc9607811cb17ce51f1c8c2c5098dbdd28f"
    "ca547b3f58c01a424ac05f869f49c6a34672ea2cbbc558428aa1fe48bbfd61158b1b735a65d99f21e70dbc020bfdface"
    "9f724a0d1fb5895db971cc81aa7608baa0920abb0a565c9c436e2fd13323428296c86385f2384e408a31e104670df079"
    "1d93e743a3a5194ee6b076fb6323ca593011b7348c16cf58f66b9633906ba54a2ee803187344b394f75dd2e663a57b95"
    "6cb830dd7a908d4f39a2336a61ef9fda549180d4ccde21514d117b6c6fd07a9102b5efe710a32af4eeacae2cb3b1dec0"
    "35b9593b48b9d3ca4c13d245d5f04169b0b1"
);
fn secrets(ephemeral: [u8; 32], nonce: [u8; 32]) -> HandshakeSecrets {
    HandshakeSecrets { ephemeral, nonce, ecies_ephemeral: [1; 32], ecies_iv: [2; 16], padding: vec![3; 100] }
}

#[test]
fn every_auth_is_read_and_names_the_initiator() {
    let (a, b) = (NodeKey::from_bytes(&STATIC_A).unwrap(), NodeKey::from_bytes(&STATIC_B).unwrap());
    for (auth, plain) in [(AUTH_1, true), (AUTH_2, false), (AUTH_3, false)] {
        let responder = Responder::new(&b, secrets(EPHEMERAL_B, NONCE_B)).unwrap();
        let (taken, ack, finished) = responder.read(auth).unwrap().unwrap();
        assert_eq!((taken, finished.remote), (auth.len(), *a.id()));
        assert_eq!(ack.len() == 210, plain);
        assert!(responder.read(&auth[..auth.len() - 1]).unwrap().is_none());
    }
}

#[test]
fn every_ack_is_read_and_opens_the_frames_of_the_responder() {
    let (a, b) = (NodeKey::from_bytes(&STATIC_A).unwrap(), NodeKey::from_bytes(&STATIC_B).unwrap());
    for (ack, form) in [(ACK_1, AuthForm::Plain), (ACK_2, AuthForm::Eip8), (ACK_3, AuthForm::Eip8)] {
        let initiator = Initiator::new(&a, b.id(), &secrets(EPHEMERAL_A, NONCE_A), form).unwrap();
        let (taken, mut finished) = initiator.read(ack).unwrap().unwrap();
        assert_eq!(taken, ack.len());
        let shared =
            ecies::agree(&scalar(&EPHEMERAL_B).unwrap(), &scalar(&EPHEMERAL_A).unwrap().public_key());
        let transcript = Transcript {
            ephemeral_shared: shared,
            initiator_nonce: NONCE_A,
            responder_nonce: NONCE_B,
            auth: initiator.auth(),
            ack,
        };
        let (_, mut writer) = transcript.frames(HandshakeRole::Responder);
        let mut frame = Vec::new();
        writer.write(7, b"payload", &mut frame).unwrap();
        let read = finished.reader.read(&frame, 100).unwrap();
        assert_eq!(read, (frame.len(), Some(Frame { code: 7, payload: b"payload".to_vec() })));
    }
}

#[test]
fn the_secrets_are_those_of_the_text() {
    let shared = ecies::agree(&scalar(&EPHEMERAL_B).unwrap(), &scalar(&EPHEMERAL_A).unwrap().public_key());
    let transcript = Transcript {
        ephemeral_shared: shared,
        initiator_nonce: NONCE_A,
        responder_nonce: NONCE_B,
        auth: AUTH_2,
        ack: ACK_2,
    };
    let secrets = transcript.secrets();
    assert_eq!(secrets.aes, hex!("80e8632c05fed6fc2a13b0f8d31a3cf645366239170ea067065aba8e28bac487"));
    assert_eq!(secrets.mac, hex!("2ea74ec5dae199227dff1af715362700e989d889d7a493cb0639691efb8e5f98"));
}
